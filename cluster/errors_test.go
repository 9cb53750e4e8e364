package cluster

import (
	"errors"
	"testing"
)

// Every error that has a meaning keeps it on the way to another node.
func TestErrorsKeepTheirMeaningOnTheWay(t *testing.T) {
	codes := wireErrors()
	for code, is := range codes {
		got := codes.Decode(codes.Encode(is))
		if !errors.Is(got, is) || got.Error() != is.Error() {
			t.Errorf("%s: %v came as %v", code, is, got)
		}
		wrapped := errors.Join(errors.New("what was done"), is)
		if got := codes.Decode(codes.Encode(wrapped)); !errors.Is(got, is) || got.Error() != wrapped.Error() {
			t.Errorf("%s: %v came as %v", code, wrapped, got)
		}
	}
}
