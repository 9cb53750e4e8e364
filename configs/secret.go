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
// gives the value. The zero Secret is none.
//
// Guarantee 17.
type Secret struct {
	// value is behind a pointer because fmt can't call methods on an unexported field
	// of another struct: it prints what it finds there, which is then an address.
	value *string
}

const hidden = "***"

// NewSecret makes a Secret of a value at hand (in tests, for example).
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal returns the value itself. Hand it to the protocol, never to a message.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsSet reports whether there is a value, be it empty text.
func (s Secret) IsSet() bool { return s.value != nil }

// String returns ***.
func (s Secret) String() string { return hidden }

// GoString returns ***.
func (s Secret) GoString() string { return hidden }

// Format prints *** for every verb, %#v and %x included.
func (s Secret) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, hidden) }

// LogValue returns *** for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON returns "***".
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// MarshalText returns ***.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalYAML returns "***".
func (s Secret) MarshalYAML() (any, error) { return hidden, nil }

// parseSecret reads {env: NAME} or {file: PATH}. No error of it holds the value.
func parseSecret(n *yaml.Node) (Secret, error) {
	where, name, err := parseSecretRef(n)
	if err != nil {
		return Secret{}, err
	}
	if where == "file" {
		return readSecret(name)
	}
	v, ok := os.LookupEnv(name)
	if !ok {
		return Secret{}, fmt.Errorf("environment variable %s is not set", name)
	}
	return NewSecret(v), nil
}

// parseSecretRef returns where a secret is, env or file, and its name there.
func parseSecretRef(n *yaml.Node) (where, name string, err error) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return "", "", errors.New("a secret does not stand in the file: write {env: NAME} or {file: PATH}")
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return "", "", errors.New("want {env: NAME} or {file: PATH}")
	}
	name, err = parseString(resolve(n.Content[1]))
	if err != nil || name == "" {
		return "", "", errors.New("want {env: NAME} or {file: PATH}, the name as text")
	}
	where = n.Content[0].Value
	if where != "env" && where != "file" {
		return "", "", fmt.Errorf("unknown key %q: want env or file%s", where, Suggestion(where, []string{"env", "file"}))
	}
	return where, name, nil
}

// maxSecret bounds a secret's file: whoever names another file by mistake should hear
// of it.
const maxSecret = 64 << 10

// readSecret reads a file whose content, less one line break at the end, is the value.
func readSecret(path string) (Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return Secret{}, fmt.Errorf("reading secret: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return Secret{}, fmt.Errorf("reading secret: %w", err)
	}
	if len(b) > maxSecret {
		return Secret{}, fmt.Errorf("the file %s is larger than %s: that is no secret", path, showSize(maxSecret))
	}
	return NewSecret(strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")), nil
}
