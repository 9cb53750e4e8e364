package nginx_test

import (
	"slices"
	"strings"
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

// A log that is truncated and has its former size again at the next look is anew.
func TestATruncatedLogOfItsFormerSizeIsReadAnew(t *testing.T) {
	t.Parallel()
	r := newReader(t, "")
	r.write("access.log", line("a", "b"))
	r.start()
	r.want("a", "b")
	r.write("access.log", line("c", "d")) // as os.WriteFile does: truncated first
	r.want("a", "b", "c", "d")
	r.stop()
}

// Of a file that was empty nothing but its key is known, and the kernel gives that to
// another file at once; here the file itself becomes a copy.
func TestAnEmptyFileThatBecomesACopyIsNotReadAnew(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", paths: ['DIR/access.log*']")
	r.write("access.log.1", "")
	r.write("access.log", line("a", "b"))
	r.start()
	r.want("a", "b")
	r.untilCounter("files_finished", 1)
	r.write("access.log.1", line("a", "b"))
	r.write("access.log", "")
	r.untilCounter("truncations", 1)
	r.add("access.log", line("c"))
	r.want("a", "b", "c")
	r.stop()
}

// What is in journals must have the same positions in each version.
func TestPositionsNameTheFileItsGenerationAndTheOffset(t *testing.T) {
	t.Parallel()
	r := newReader(t, ", paths: ['DIR/access.log*']")
	r.write("access.log.1", line("a", "b"))
	r.write("access.log", line("a", "c"))
	r.mustOnce()
	r.want("a", "b", "a", "c")
	var got []string
	for _, record := range r.journal.Records() {
		id, rest, _ := strings.Cut(record.Position, ".")
		if len(id) != 16 {
			t.Errorf("got the position %q, want an id of 16 digits", record.Position)
		}
		got = append(got, rest)
	}
	if want := []string{"0.0", "0.8", "1.0", "1.8"}; !slices.Equal(got, want) {
		t.Errorf("got generations and offsets %q, want %q", got, want)
	}
}
