package mysql_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every code that an operator may meet is in the docs.
func TestCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/mysql.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?:Code: |stop\(|code[A-Z]\w+ += |", )"([a-z]+(?:-[a-z]+)+)"`)
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range code.FindAllSubmatch(text, -1) {
			found++
			if !strings.Contains(string(doc), "`"+string(m[1])+"`") {
				t.Errorf("docs/mysql.md does not have the code %s of %s", m[1], name)
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d codes were found in the code", found)
	}
}
