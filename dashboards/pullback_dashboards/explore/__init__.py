"""The page that finds series by what they are and draws them side by side."""
