"""The drawings of the pages, by code.

`python -m website.pictures` draws them anew, and a test says when they are not current.

Each module has a function `drawn`, which returns an SVG. They are narrow, so that a telephone shows
them whole, and stand on paper of their own, so that they can be read in light and dark.
"""
