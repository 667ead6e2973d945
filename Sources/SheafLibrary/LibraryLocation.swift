/// Where a library is: its file and what lies beside it.
package struct LibraryLocation: Hashable, Sendable {
  /// Absolute path of the SQLite file.
  package let path: String

  /// - Parameter path: absolute, or relative to the working directory.
  package init(path: String) { self.path = path }

  /// The lock that the owning process holds (flock(2)); its contents are that process's id in decimal.
  package var lockPath: String { path + "-lock" }
  /// The Unix socket of the HTTP API.
  package var socketPath: String { path + "-socket" }
}
