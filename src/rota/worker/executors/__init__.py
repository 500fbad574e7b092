"""Where handlers run, behind one seam."""
