// Package sinktest is the suite that every sink passes: that nothing is lost whatever
// the destination does, that a refusal names exactly what was refused, and that a
// redelivery changes nothing.
//
//	func TestConformance(t *testing.T) {
//		sinktest.Run(t, sinktest.Suite{Keeps: sinktest.Latest, New: newDestination})
//	}
package sinktest
