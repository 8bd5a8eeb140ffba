"""From text to a syntax tree: YAML events, the two lark grammars, the AST. The only package that touches YAML."""
