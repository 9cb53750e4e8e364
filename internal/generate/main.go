// Command generate writes the documents that come from the declarations of the pipeline
// file (docs/config.md, configs/schema.json, configs/reference.yaml) and of the server's
// (docs/server.md, configs/server.schema.json, configs/server.yaml). With -check it
// writes nothing and fails if one of them is stale.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/daybook-data/daybook/configs"
	"github.com/daybook-data/daybook/internal/node"
	"github.com/daybook-data/daybook/pipeline"
	"github.com/daybook-data/daybook/sinks"
	"github.com/daybook-data/daybook/sources"
)

func main() {
	check := flag.Bool("check", false, "fail if a document is stale, in place of writing it")
	root := flag.String("root", ".", "root of the project")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	for _, d := range documents() {
		var b bytes.Buffer
		if err := d.write(&b); err != nil {
			return fmt.Errorf("%s: %w", d.path, err)
		}
		path := filepath.Join(root, d.path)
		if check {
			there, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if !bytes.Equal(there, b.Bytes()) {
				return fmt.Errorf("%s is stale: run make generate", d.path)
			}
			continue
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// document is one generated file.
type document struct {
	path  string
	write func(w io.Writer) error
}

func documents() []document {
	return []document{
		{"docs/server.md", func(w io.Writer) error { return configs.WriteMarkdown(w, serverMarkdownIntro, &node.ServerFile{}) }},
		{"configs/server.schema.json", func(w io.Writer) error { return configs.WriteSchema(w, "Daybook server file", &node.ServerFile{}) }},
		{"configs/server.yaml", func(w io.Writer) error {
			return configs.WriteReference(w, serverReferenceIntro, &node.ServerFile{}, serverExamples())
		}},
		{"docs/config.md", func(w io.Writer) error { return configs.WriteMarkdown(w, markdownIntro, file()) }},
		{"configs/schema.json", func(w io.Writer) error { return configs.WriteSchema(w, "Daybook pipeline file", file()) }},
		{"configs/reference.yaml", func(w io.Writer) error {
			return configs.WriteReference(w, referenceIntro, file(), examples())
		}},
	}
}

func file() *pipeline.File {
	return pipeline.NewFile(pipeline.Kinds{Sources: sources.All(), Sinks: sinks.All()})
}
