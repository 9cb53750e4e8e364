package node

import (
	"errors"
	"testing"

	"github.com/daybook-data/daybook/cluster"
)

func TestTheReserveIsASizeOrAPartOfTheDisk(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]cluster.DiskOptions{
		"": {}, "none": {ReserveBytes: -1}, "2GiB": {ReserveBytes: 2 << 30}, "7.5%": {ReservePercent: 7.5},
	} {
		if got, err := (DiskFlags{Reserve: text}).options(); err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"2", "-1GiB", "0%", "100%", "x%", "NaN%", "much", "0B"} {
		if _, err := (DiskFlags{Reserve: text}).options(); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: got %v, want ErrConfig", text, err)
		}
	}
}
