package nginx_test

import (
	"testing"

	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sources/nginx"
)

// A position is told as files and bytes.
func TestAPositionIsToldAsFilesAndBytes(t *testing.T) {
	t.Parallel()
	const tail = `"head":{"len":0},"tail":{"len":0}}`
	for position, want := range map[pipeline.Position]string{
		`{"v":1,"at":1,"logs":[]}`: "no file yet",
		`{"v":1,"at":1,"logs":[{"path":"/l/a.log","files":[{"off":5,"done":true,` + tail + `,{"off":77,` + tail + `]}]}`:                           "/l/a.log: byte 77",
		`{"v":1,"at":1,"logs":[{"path":"/l/a.log","files":[{"off":5,` + tail + `,{"off":0,` + tail + `]},{"path":"/l/b.log","files":[]}]}`:         "/l/a.log: byte 0 (rotated files to be read: 1), /l/b.log: no file yet",
		`{"v":1,"logs":[{"path":"a","files":[]},{"path":"b","files":[]},{"path":"c","files":[]},{"path":"d","files":[]},{"path":"e","files":[]}]}`: "a: no file yet, b: no file yet, c: no file yet, and 2 more",
		`unreadable`: "unreadable",
	} {
		if got := (&nginx.Source{}).Describe(position); got != want {
			t.Errorf("%s: got %q, want %q", position, got, want)
		}
	}
}
