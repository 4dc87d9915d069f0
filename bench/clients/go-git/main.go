// go-git as a client of a Git server. ../README.md describes the operations.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/plumbing/transport/ssh"
)

// go-git lacks the operation.
const unsupported = 9

func main() {
	if len(os.Args) < 2 {
		os.Exit(unsupported)
	}
	err := run(os.Args[1], os.Args[2:])
	if errors.Is(err, git.NoErrAlreadyUpToDate) {
		err = nil
	}
	if errors.Is(err, errors.ErrUnsupported) {
		os.Exit(unsupported)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(operation string, arguments []string) error {
	switch operation {
	case "version":
		fmt.Println(version())
		return nil
	case "clone", "shallow":
		return clone(arguments[0], arguments[1], operation == "shallow")
	case "fetch":
		return fetch(arguments[0], 0)
	case "deepen":
		depth, err := strconv.Atoi(arguments[1])
		if err != nil {
			return err
		}
		return fetch(arguments[0], depth)
	case "push":
		return push(arguments[0], arguments[1:])
	}
	return errors.ErrUnsupported
}

func version() string {
	information, _ := debug.ReadBuildInfo()
	for _, module := range information.Deps {
		if module.Path == "github.com/go-git/go-git/v5" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "unknown"
}

func clone(url, directory string, shallow bool) error {
	method, err := authentication(url)
	if err != nil {
		return err
	}
	authority, err := authority()
	if err != nil {
		return err
	}
	options := &git.CloneOptions{
		URL:      url,
		Auth:     method,
		CABundle: authority,
		Progress: os.Stderr,
		Tags:     git.AllTags,
	}
	if shallow {
		options.Depth = 1
	}
	_, err = git.PlainClone(directory, false, options)
	return err
}

func fetch(directory string, depth int) error {
	repository, url, err := open(directory)
	if err != nil {
		return err
	}
	method, err := authentication(url)
	if err != nil {
		return err
	}
	authority, err := authority()
	if err != nil {
		return err
	}
	return repository.Fetch(&git.FetchOptions{
		Auth:     method,
		CABundle: authority,
		Progress: os.Stderr,
		Depth:    depth,
		Tags:     git.AllTags,
	})
}

func push(directory string, refspecs []string) error {
	repository, url, err := open(directory)
	if err != nil {
		return err
	}
	method, err := authentication(url)
	if err != nil {
		return err
	}
	authority, err := authority()
	if err != nil {
		return err
	}
	specs := make([]config.RefSpec, len(refspecs))
	for index, refspec := range refspecs {
		specs[index] = config.RefSpec(refspec)
	}
	return repository.Push(&git.PushOptions{
		Auth:     method,
		CABundle: authority,
		Progress: os.Stderr,
		RefSpecs: specs,
	})
}

func open(directory string) (*git.Repository, string, error) {
	repository, err := git.PlainOpen(directory)
	if err != nil {
		return nil, "", err
	}
	remote, err := repository.Remote("origin")
	if err != nil {
		return nil, "", err
	}
	return repository, remote.Config().URLs[0], nil
}

// authentication returns the key or the token for a URL, if it takes one.
func authentication(url string) (transport.AuthMethod, error) {
	endpoint, err := transport.NewEndpoint(url)
	if err != nil {
		return nil, err
	}
	switch endpoint.Protocol {
	case "http", "https":
		if token := os.Getenv("CLIENT_TOKEN"); token != "" {
			return &http.BasicAuth{Username: os.Getenv("CLIENT_USER"), Password: token}, nil
		}
	case "ssh":
		keys, err := ssh.NewPublicKeysFromFile(endpoint.User, os.Getenv("CLIENT_KEY"), "")
		if err != nil {
			return nil, err
		}
		keys.HostKeyCallback, err = ssh.NewKnownHostsCallback(os.Getenv("CLIENT_KNOWN_HOSTS"))
		return keys, err
	}
	return nil, nil
}

// authority returns the certificate of the authority that signed those of servers.
func authority() ([]byte, error) {
	path := os.Getenv("CLIENT_CA")
	if path == "" {
		return nil, nil
	}
	return os.ReadFile(path)
}
