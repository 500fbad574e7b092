"""What the shop adds to manage.py."""
