package configs_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/configs"
	"gopkg.in/yaml.v3"
)

// Whatever stands in a password is the password; no character of it means
// anything to YAML.
func TestSecretsAreTakenLiterally(t *testing.T) {
	values := []string{
		`$1`, `${HOME}`, `"`, `'`, `a"b'c`, `a: b`, `: `, `#`, ` # x`, `>`, `|`, "two\nlines", "ends\n", `\C`, `\n`, `{env: X}`,
		"*alias", "&anchor", "!tag", "%", "@", "`", "", " ", "null", "true", "0123", "é", "\xff\xfe", "tab\there", "- a", "---", "?",
	}
	for i, v := range values {
		name := fmt.Sprintf("DAYBOOK_TEST_SECRET_%d", i)
		t.Setenv(name, v)
		s := mustDecode(t, "secret: {env: "+name+"}")
		if !s.Secret.IsSet() || s.Secret.Reveal() != v {
			t.Errorf("env: got %q, want %q", s.Secret.Reveal(), v)
		}
		for _, end := range []string{"", "\n", "\r\n"} {
			if end == "" && (strings.HasSuffix(v, "\n") || strings.HasSuffix(v, "\r")) {
				continue // one line break at the end is the file's
			}
			path := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(path, []byte(v+end), 0o600); err != nil {
				t.Fatal(err)
			}
			s := mustDecode(t, "secret:\n  file: '"+path+"'")
			if !s.Secret.IsSet() || s.Secret.Reveal() != v {
				t.Errorf("file ending in %q: got %q, want %q", end, s.Secret.Reveal(), v)
			}
		}
	}
}

func TestLookingAsksForNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	load := func(secret string) (*sample, error) {
		if err := os.WriteFile(path, []byte("one: {}\nsecret: "+secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := new(sample)
		return s, configs.LoadForSecretsOf("journal", path, s)
	}
	for _, secret := range []string{"{env: DAYBOOK_TEST_NOT_SET}", "{file: /nowhere/secret}"} {
		if s, err := load(secret); err != nil || !s.Secret.IsSet() || s.Secret.Reveal() != "" {
			t.Errorf("%s: got %v, want a secret that is set and empty", secret, err)
		}
	}
	if _, err := load("hunter2"); err == nil || !strings.Contains(err.Error(), "does not stand in the file") {
		t.Errorf("a secret in the file: got %v", err)
	}
}

// vault is a section with a section with a secret.
type vault struct{ door door }

type door struct{ secret configs.Secret }

func (v *vault) Fields(f *configs.Fields) { f.Sub(&v.door, "door", "A section.") }
func (d *door) Fields(f *configs.Fields)  { f.Secret(&d.secret, "secret", "A secret.") }

func TestTheSecretsOfTheWantedSectionAreRead(t *testing.T) {
	t.Setenv("DAYBOOK_TEST_SECRET", "hunter2")
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte("door: {secret: {env: DAYBOOK_TEST_SECRET}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for section, want := range map[string]string{"door": "hunter2", "doo": ""} {
		var v vault
		if err := configs.LoadForSecretsOf(section, path, &v); err != nil || v.door.secret.Reveal() != want {
			t.Errorf("looking for those of %s: %v, %q", section, err, v.door.secret.Reveal())
		}
	}
}

func TestASecretsFaultsNeverShowIt(t *testing.T) {
	t.Setenv("DAYBOOK_TEST_SECRET", "hunter2")
	for _, text := range []string{
		"secret: hunter2", "secret: [hunter2]", "secret: {env: [hunter2]}", "secret: {value: hunter2}", "secret: {file: {a: hunter2}}",
		"secret: {env: DAYBOOK_TEST_SECRET, file: x}", "secret:\n  env: DAYBOOK_TEST_SECRET\nsecret: hunter2", "secret: !x hunter2", "secret: 'hunter2",
		"secret: {env: DAYBOOK_TEST_SECRET}\nnumber: x",
	} {
		_, err := decode(t, text)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want an error that does not show the value", text, err)
		}
	}
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, "secret: {file: '"+big+"'}", "that is no secret")
	wantError(t, "secret:", "want {env: NAME} or {file: PATH}")
	wantError(t, "secret: {env: ''}", "the name as text")
}

func TestSecretsPrintAsStars(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	secret := configs.NewSecret(value)
	type holder struct {
		Public configs.Secret
		hidden configs.Secret
		list   []configs.Secret
	}
	h := holder{secret, secret, []configs.Secret{secret}}
	var printed bytes.Buffer
	for _, v := range []any{secret, &secret, h, &h, []configs.Secret{secret}, map[string]configs.Secret{"k": secret}, []any{h}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v"} {
			fmt.Fprintf(&printed, verb+"\n", v)
		}
		fmt.Fprintln(&printed, v)
		fmt.Fprintln(&printed, errors.Join(fmt.Errorf("connecting with %v", v)))
		slog.New(slog.NewTextHandler(&printed, nil)).Info("x", "v", v, "in", slog.GroupValue(slog.Any("v", v)))
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("x", "v", v)
		for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal, xml.Marshal} {
			if b, err := marshal(v); err == nil {
				printed.Write(b)
			}
		}
	}
	for _, form := range []string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value), fmt.Sprint([]byte(value))} {
		if i := strings.Index(printed.String(), form); i >= 0 {
			t.Errorf("the secret shows: %q", printed.String()[max(0, i-40):min(printed.Len(), i+40)])
		}
	}
	if !strings.Contains(printed.String(), "***") {
		t.Error("nothing was printed in its place")
	}
	if fmt.Sprint(configs.Secret{}) != "***" || (configs.Secret{}).IsSet() || (configs.Secret{}).Reveal() != "" {
		t.Error("the zero Secret is none, and prints like any")
	}
}
