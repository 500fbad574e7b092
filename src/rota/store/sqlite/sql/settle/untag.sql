-- Refused in any other transaction than the one that tag.sql has tagged.
RELEASE rota_tag;
