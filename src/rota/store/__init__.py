"""Where jobs are kept: one seam (`protocol`), one backend per folder."""
