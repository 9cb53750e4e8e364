package configs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/daybook-data/daybook/configs"
)

// sample has a field of every kind.
type sample struct {
	Text     string
	Switch   bool
	Number   int
	Duration time.Duration
	Size     int64
	Time     time.Time
	Texts    []string
	Secret   configs.Secret
	Sub      below
	Optional *below
	List     []below
	Chosen   string
	checked  *[]string
}

type below struct {
	Name  string
	Count int
}

func (s *sample) Fields(f *configs.Fields) {
	f.String(&s.Text, "text", "a", "A text.")
	f.Bool(&s.Switch, "switch", false, "A switch.")
	f.Int(&s.Number, "number", 7, "A number.")
	f.Duration(&s.Duration, "duration", 90*time.Second, "A duration.")
	f.Size(&s.Size, "size", 3*configs.MiB, "A size.")
	f.Time(&s.Time, "time", "A time.")
	f.Strings(&s.Texts, "texts", []string{"x"}, "Texts.")
	f.Secret(&s.Secret, "secret", "A secret.")
	f.Sub(&s.Sub, "sub", "A section.")
	configs.Optional(f, &s.Optional, "optional", "A section that may be missing.")
	configs.ListOf(f, &s.List, "list", "Sections.", func() *below { return new(below) })
	f.OneOf("choice", []configs.Choice{
		{Key: "one", Doc: "One.", New: func() configs.Section { return new(below) }},
		{Key: "two", Doc: "Two.", New: func() configs.Section { return new(below) }},
	}, func(key string, _ configs.Section) { s.Chosen = key })
}

func (s *sample) Check(at *configs.At) {
	if s.checked == nil {
		return
	}
	for _, key := range []string{"text", "number", "sub"} {
		if at.Has(key) {
			*s.checked = append(*s.checked, key)
		}
	}
	at.Errorf("number", "said of the number")
	at.Item("list", 1).Errorf("name", "said of an item")
	at.Item("list", 9).Errorf("", "said of a missing item")
}

func (b *below) Fields(f *configs.Fields) {
	f.String(&b.Name, "name", "", "A name.")
	f.Int(&b.Count, "count", 1, "A count.")
}

// decode decodes YAML to which the choice is added.
func decode(t *testing.T, text string) (*sample, error) {
	t.Helper()
	s := new(sample)
	err := configs.Decode("f.yaml", []byte(text+"\none: {}\n"), s)
	return s, err
}

func mustDecode(t *testing.T, text string) *sample {
	t.Helper()
	s, err := decode(t, text)
	if err != nil {
		t.Fatalf("decoding %q: %v", text, err)
	}
	return s
}

func wantError(t *testing.T, text string, words ...string) {
	t.Helper()
	_, err := decode(t, text)
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("decoding %q: got %v, want an error that says %q", text, err, w)
		}
	}
}
