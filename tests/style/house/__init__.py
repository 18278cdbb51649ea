"""What scripts/house measures. Each module has figures(), which yields (key, today, where):
`today` is a number, or None with the reason in `where`, which otherwise says where the number comes
from."""
