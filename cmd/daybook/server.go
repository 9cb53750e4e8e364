package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) serverCommand() *cobra.Command {
	var o node.ServerOptions
	cmd := &cobra.Command{
		Use:   "server (--data DIR | --config FILE)",
		Short: "Serve a journal to Kafka clients and to pipelines elsewhere",
		Long: `Serves the journal in a folder over the Kafka wire protocol. Any Kafka client can
produce to it and read from it; pipelines reach it with journal: {brokers: [host:port]}.

It listens on loopback unless told otherwise, and then asks nobody for a password. A
file says more than the flags can: several listeners, TLS, logins, users, and who may
do what (docs/server.md explains it, configs/server.yaml has every field).`,
		Example: "  daybook server --data ./data\n  daybook server --data ./data --kafka 0.0.0.0:9092 --advertise db1.example:9092\n  daybook server --config server.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			o.Log, o.Version = log, version
			return node.Serve(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.File, "config", "", "file that says all of the server, in place of the other flags")
	cmd.Flags().StringVar(&o.Dir, "data", "", "folder of the journal; made if missing")
	cmd.Flags().StringVar(&o.Kafka, "kafka", "127.0.0.1:9092", "address for Kafka clients, host:port")
	cmd.Flags().StringVar(&o.Advertise, "advertise", "", "address that clients are told to use, where it differs from --kafka")
	cmd.Flags().StringVar(&o.HTTP, "http", "127.0.0.1:9600", "address for /metrics, /live and /ready, host:port; empty for none")
	cmd.Flags().StringVar(&o.Cluster.Listen, "cluster", "", "address where other nodes connect, host:port: the journal is replicated (docs/cluster.md)")
	cmd.Flags().StringVar(&o.Cluster.Advertise, "cluster-advertise", "", "address that other nodes are told to use, where it differs from --cluster")
	cmd.Flags().StringSliceVar(&o.Cluster.Join, "join", nil, "--cluster addresses of nodes to join, any of them; without it an empty folder founds a cluster")
	cmd.Flags().StringSliceVar(&o.Cluster.Observe, "observe", nil, "--cluster addresses of nodes, or of observers, to copy everything from: makes this an observer, which only reads; --cluster is then where further observers connect")
	cmd.Flags().StringVar(&o.Cluster.Rack, "rack", "", "zone of this node: replicas go to different ones")
	cmd.Flags().StringVar(&o.Disk.Reserve, "disk-reserve", "", "what must be free for appends to be taken: a size, a part of the disk like 5%, or none (default 5%, at most 1GiB)")
	cmd.Flags().BoolVar(&o.Disk.DeleteEarly, "disk-delete-early", false, "remove the oldest records before their time while the reserve is touched; what a sink has not read stays")
	cmd.Flags().DurationVar(&o.Disk.Stall, "disk-stall", 5*time.Second, "after how long a disk that does not answer is reported")
	for _, flag := range []string{"data", "kafka", "advertise", "http", "cluster", "cluster-advertise", "join", "observe", "rack", "disk-reserve", "disk-delete-early", "disk-stall"} {
		cmd.MarkFlagsMutuallyExclusive("config", flag)
	}
	return cmd
}
