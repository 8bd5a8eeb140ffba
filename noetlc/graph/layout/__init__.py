"""Layered layout: where the boxes, lines and labels of a picture go. Sizes in, coordinates out; no text and no net.

The way through it: `ranks` turns lines that lead back and puts boxes in rows, `cells` threads every line through the
rows between its ends, `order` unties crossings, `coordinates` gives every cell its place, `routes` draws the lines, and
`place` does all that for each connected part and packs the parts.
"""
