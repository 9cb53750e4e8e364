// Package recovery makes a cluster that lost its majority for good go on with what is left: each survivor reports what its
// directory holds, one plan follows from the reports and says what may be lost, and each survivor carries it out.
//
// [Inspect] changes nothing; [Apply] can be cut off at any moment and is called again; nothing is ever deleted.
package recovery
