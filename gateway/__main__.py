"""`python -m gateway` does what `goclaw` does."""

from gateway.start import main

if __name__ == "__main__":
    main()
