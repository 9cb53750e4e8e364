// Package services installs and runs the real servers that Daybook is tested
// and shown against: MySQL, MariaDB, Redis, Elasticsearch, nginx and Kafka.
//
// # Installing
//
// Nothing of the system is touched and no root is needed. Debian packages are
// downloaded by the machine's own apt into a private state directory, unpacked
// beside each other and run with their own loader and libraries, so that a
// server of one Debian release runs on another. Java servers are resolved by
// Maven. What is installed lies in one cache directory ($DAYBOOK_SERVICES, or
// daybook/services below the user's cache directory) that all processes share:
//
//	mysql-1a2b3c4d/      one installation, named after everything it is made of
//	    MANIFEST         every file with its size; written last
//	mysql-1a2b3c4d.lock  held while it is built
//	apt/bookworm/        package lists of a release
//	run/mysql-123/       data of a running server, removed when it is closed
//	ports                one byte a TCP port, locked while the port is ours
//
// An installation is built beside its final name and renamed last, under a file
// lock, so that parallel test binaries wait for one builder and nobody meets
// half of one. Its manifest is checked again before every use.
//
// # Running
//
// Every server listens on 127.0.0.1 only, is a child of this process and dies
// with it, however this process ends. A start returns once the server answers.
// Only tests, the demo and the examples use this package; Daybook itself does
// not.
package services
