package sqlite

import (
	"testing"
)

// TestOnlyWhatMustBeIsSynced looks from inside of transactions at the level that SQLite syncs them with: 2 is FULL, 1 is NORMAL.
func TestOnlyWhatMustBeIsSynced(t *testing.T) {
	q, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	level := func(make func(func(*tx) error) *operation) int64 {
		t.Helper()
		var got []int64
		err := q.writer.do(t.Context(), make(func(x *tx) (err error) {
			got, err = x.conn.integers("PRAGMA synchronous", 0)
			return err
		}))
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	for i, c := range []struct {
		name string
		make func(func(*tx) error) *operation
		want int64
	}{
		{"first durable", newDurable, 2},
		{"soft", newOperation, 1},
		{"durable after soft", newDurable, 2},
		{"durable again", newDurable, 2},
	} {
		if got := level(c.make); got != c.want {
			t.Errorf("%d, %s: level %d, want %d", i, c.name, got, c.want)
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
