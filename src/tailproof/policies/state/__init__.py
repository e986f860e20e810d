"""What policies learn: plain arrays with the paths axis first."""
