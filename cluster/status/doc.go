// Package status puts together how a cluster is: of what every node says of its own copies, a [Report], and of what the node
// that is asked knows, a [View].
package status
