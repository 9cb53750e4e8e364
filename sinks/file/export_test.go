package file

import "testing"

// ManifestFiles returns the files that a manifest names, by their part.
func ManifestFiles(t *testing.T, text []byte) map[string]string {
	t.Helper()
	m, err := decodeManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range m.Files {
		files[f.Part] = f.Path
	}
	return files
}

// Escape is escape, for its fuzz test.
func Escape(text string) string { return escape(text, maxSegment) }

// MaxOpen is the bound on open parts.
const MaxOpen = maxOpen
