package strictjson_test

import (
	"testing"

	"github.com/daybook-data/daybook/internal/strictjson"
)

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	t.Parallel()
	for in, ok := range map[string]bool{
		`{"a":1}`:         true,
		" {\"a\":1}\n":    true,
		`{}`:              true,
		`{"a":1,"b":2}`:   false,
		`{"a":1} {"a":2}`: false,
		`{"a":1}x`:        false,
		`{"a":1`:          false,
		``:                false,
	} {
		var v struct{ A int }
		if err := strictjson.Decode([]byte(in), &v); (err == nil) != ok {
			t.Errorf("decoding %q: %v", in, err)
		}
	}
}

func TestAChecksumIsThatOfTheBytes(t *testing.T) {
	t.Parallel()
	if got := strictjson.Checksum([]byte("123456789")); got != "e3069283" { // the check value of CRC-32C
		t.Errorf("the checksum is %s", got)
	}
}
