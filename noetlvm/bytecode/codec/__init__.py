"""How a program becomes bytes and back: sections, encoder, decoder."""
