package nginx

import (
	"fmt"
	"strings"

	"github.com/daybook-data/daybook/pipeline"
)

var _ pipeline.Describer = (*Source)(nil)

// describedLogs is how many logs are named; of the others it is said how many there are.
const describedLogs = 3

// Describe says how far each log was read: its path, the byte in the file that is the log now, and how many rotated
// files are still being read.
func (*Source) Describe(p pipeline.Position) string {
	s, err := parseState(p)
	if err != nil {
		return string(p)
	}
	var all []string
	for _, l := range s.Logs[:min(len(s.Logs), describedLogs)] {
		all = append(all, l.describe())
	}
	if more := len(s.Logs) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	if len(all) == 0 {
		return "no file yet"
	}
	return strings.Join(all, ", ")
}

func (l logState) describe() string {
	if len(l.Files) == 0 {
		return l.Base + ": no file yet"
	}
	older := 0
	for _, f := range l.Files[:len(l.Files)-1] {
		if !f.Done {
			older++
		}
	}
	text := fmt.Sprintf("%s: byte %d", l.Base, l.Files[len(l.Files)-1].Offset)
	if older > 0 {
		text += fmt.Sprintf(" (rotated files to be read: %d)", older)
	}
	return text
}
