"""Which drawings does the course have? Boxes and arrows made from plans; see systems.py first."""
