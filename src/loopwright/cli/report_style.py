"""How a report looks."""

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1f2937; font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem; }
h1 { margin: 0 0 1rem; font-size: 1.6rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #e5e7eb; text-align: left;
  white-space: nowrap; }
th { font-weight: 600; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr)); gap: 1rem; }
figure { margin: 0; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
pre { padding: 1rem; overflow-x: auto; background: #f3f4f6; border-radius: .4rem;
  font-size: .85rem; }
.failure { padding: .6rem 1rem; background: #fef2f2; border-left: 4px solid #dc2626; }
"""
