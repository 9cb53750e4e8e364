package pipeline_test

import (
	"testing"

	"github.com/daybook-data/daybook/pipeline"
)

func TestTheReserveIsASizeOrAPartOfTheDisk(t *testing.T) {
	type reserve struct {
		bytes   int64
		percent float64
	}
	for text, want := range map[string]reserve{"": {}, "none": {bytes: -1}, "2GiB": {bytes: 2 << 30}, "7.5%": {percent: 7.5}} {
		c := pipeline.DiskConfig{Reserve: text}
		if bytes, percent, err := c.ReserveOf(); err != nil || (reserve{bytes, percent}) != want {
			t.Errorf("%q: got %d, %v, %v; want %+v", text, bytes, percent, err, want)
		}
	}
	for _, text := range []string{"2", "-1GiB", "0%", "100%", "x%", "NaN%", "much", "0B"} {
		c := pipeline.DiskConfig{Reserve: text}
		if _, _, err := c.ReserveOf(); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
