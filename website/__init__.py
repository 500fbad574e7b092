"""The documentation's site: the pages of `docs/`, and a reference that is read from the code.

    python -m website          # what `make docs` does: build/site

Pages stay Markdown that is read in the repository, too. They are copied into `build/site-source`
(`staging`), with the reference beside them (`reference`), in the order of `navigation`; Sphinx
makes HTML of that (`building`). Nothing that is generated is committed.
"""
