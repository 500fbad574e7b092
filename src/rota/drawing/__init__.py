"""Pictures as SVG, drawn without any library."""
