package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// Secret holds a password or token. Whatever prints it prints ***; only Reveal
// gives the value.
type Secret struct {
	value string
}

const hidden = "***"

// NewSecret makes a Secret of a value at hand (in tests, for example).
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the value itself. Hand it to the protocol, never to a message.
func (s Secret) Reveal() string { return s.value }

// IsSet reports whether there is a value, be it empty text.
func (s Secret) IsSet() bool { return s.value != "" }

// String returns ***.
func (s Secret) String() string { return hidden }

// Format prints *** for every verb, %#v and %x included.
func (s Secret) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, hidden) }

// LogValue returns *** for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON returns "***".
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// MarshalYAML returns "***".
func (s Secret) MarshalYAML() (any, error) { return hidden, nil }

// parseSecret reads {env: NAME} or {file: PATH}. No error of it holds the value.
func parseSecret(n *yaml.Node) (Secret, error) {
	if n.Kind == yaml.ScalarNode {
		return Secret{}, errors.New("a secret does not stand in the file: write {env: NAME} or {file: PATH}")
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return Secret{}, errors.New("want {env: NAME} or {file: PATH}")
	}
	name, err := parseString(resolve(n.Content[1]))
	if err != nil {
		return Secret{}, errors.New("want {env: NAME} or {file: PATH}, the name as text")
	}
	switch n.Content[0].Value {
	case "env":
		v, ok := os.LookupEnv(name)
		if !ok {
			return Secret{}, fmt.Errorf("environment variable %s is not set", name)
		}
		return Secret{value: v}, nil
	case "file":
		b, err := os.ReadFile(name)
		if err != nil {
			return Secret{}, fmt.Errorf("reading secret: %w", err)
		}
		return Secret{value: strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")}, nil
	}
	return Secret{}, fmt.Errorf("unknown key %q: want env or file%s", n.Content[0].Value, suggestion(n.Content[0].Value, []string{"env", "file"}))
}
