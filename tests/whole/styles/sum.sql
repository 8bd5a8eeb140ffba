-- The sum of two parameters.
SELECT %(a)s::int + %(b)s::int AS sum
