//go:build !unix

package file

func fullDisk(*store) {}
