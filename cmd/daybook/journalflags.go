package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

// journalFlags says which journal a verb that only reads is to look at.
func journalFlags(cmd *cobra.Command, w *node.Where) {
	folderFlags(cmd, w)
	cmd.Flags().StringSliceVar(&w.Brokers, "brokers", nil, "addresses of a Daybook server or a Kafka, host:port")
}

// folderFlags is journalFlags for a verb that needs the journal's files.
func folderFlags(cmd *cobra.Command, w *node.Where) {
	cmd.Flags().StringVarP(&w.File, "file", "f", "", "pipeline file whose journal to use")
	cmd.Flags().StringVar(&w.Dir, "data", "", "folder of an embedded journal, or of a server on this machine (default ./data, if nothing else says where it is)")
}
