package nginx_test

import (
	"testing"
)

// logrotate's copytruncate first copies and then truncates; a source may begin between.
func TestAStartBetweenTheCopyAndTheTruncationRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"the first start": true, "a later start": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, ", paths: ['DIR/access.log*']")
			r.write("access.log", line("a", "b"))
			if !first {
				r.start()
				r.want("a", "b")
				r.stop()
			}
			r.write("access.log.1", line("a", "b"))
			r.start()
			r.want("a", "b")
			r.untilCounter("files_followed", 1)
			r.write("access.log", "")
			r.untilCounter("truncations", 1)
			r.add("access.log", line("c"))
			r.want("a", "b", "c")
			r.stop()
		})
	}
}
