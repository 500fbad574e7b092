"""An importer: a file of prices goes into a catalogue, wholly or not at all."""
