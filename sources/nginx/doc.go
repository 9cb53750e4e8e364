// Package nginx is the source of nginx's access logs.
//
// # Values
//
// A line becomes one record; its value is a JSON object with a member for each
// variable of the log_format, named like the variable. Variables that nginx writes
// as numbers are numbers, with the digits of the line; null stands for "-" and for
// nothing. A variable with the values of several upstream servers is an array of
// numbers, and beside it, as NAME_text, the text with nginx's commas and colons. Of
// $request the parts request_method, request_uri and server_protocol are added
// where it has all three and the format does not. A log_format that is itself a JSON
// object gives that object, as it stands in the line; a bare "-" where a number
// should be becomes null.
//
// What is said of a line stands in the same object:
//
//	line      the line as it is, where it does not fit the format
//	unparsed  why it does not; members before the misfit are given
//	escaped   names of variables whose bytes are not UTF-8. Their texts are written in
//	          nginx's default escape, \xHH for each byte above 126, control character,
//	          quote and backslash, from which the bytes can be had back.
//	piece, last, nul_bytes
//	          a line longer than max_line comes in numbered pieces; one that is all
//	          zeros is counted in place of being written out
//
// Every line becomes a record, an empty one too. Records have no key.
//
// # Time
//
// The event time is that of $msec, $time_iso8601 or $time_local, with the zone that
// stands in the line. A line without one gets the time of the line before, or of
// its reading, and the header daybook.time_from.
//
// # Following
//
// Files are looked at every 10 to 200 ms and folders every second, or at once when a
// log's path names another file. An open file is read to its end although it was
// renamed or deleted, and is closed when it was rotated and silent for rotate_wait.
// What appears and is deleted between two looks is never seen.
//
// A file is known again by its inode, the first 1,024 bytes that were read of it and
// the last 256 before the place reached. So an inode given to a new file, a
// truncation (with what was written since, if there is a copy), a copy and a
// compressed file are each told for what they are, and a rotated file is gone on
// with where it was left, however often it was rotated meanwhile.
//
// A folder counts as seen when it was the same twice, since one that is read while its
// files are renamed may show a file under no name. A file that has not the log's own
// name is judged before the first byte of it is emitted: it may be a copy that is being
// made. It is held back while that is open: until the log is truncated, or was read
// beyond the copy and the copy was silent for 5 s.
//
// A record's Position is the file's id (from its log's path and its first line), the
// number of files that began alike before it, and the offset of its line. That number
// is given in the order in which files are first read.
//
// # Limits
//
// With copytruncate, what nginx writes between the copy and the truncation is in
// neither file: no reader can have it. Renaming and USR1 loses nothing.
//
// A copy that was given up and left lying, by a full disk or a killed logrotate, is
// told by the log that it was taken from; if that was truncated before anything of it
// was read, the lines come from both copies, one of them perhaps cut. So do they if the
// very first start falls between a copy and a truncation that are 5 s apart.
//
// Where a log_format has no time, or a client repeats one request within a second,
// files of one log may begin alike. Those that are equal in all bytes that are compared
// can be taken for one another where they are compressed, truncated or copied; and
// after a kill, those with one first line may be numbered in another order than before
// it, so that of what was read since the last checkpoint lines come twice or not at all.
package nginx
