/// The place of a library: its file and the files beside it.
package struct LibraryLocation: Hashable, Sendable {
  /// Absolute path of the SQLite file.
  package let path: String

  /// - Parameter path: absolute, or relative to the working directory.
  package init(path: String) { self.path = path }

  /// The lock that the owning process holds (flock(2)); its contents are that process's id in decimal.
  package var lockPath: String { path + "-lock" }
  /// The Unix socket of the HTTP API.
  package var socketPath: String { path + "-socket" }

  /// The path of a person's own library, by the XDG Base Directory Specification.
  ///
  /// - Parameters:
  ///   - data: Value of `XDG_DATA_HOME`; ignored if it is relative, as the specification says.
  ///   - home: The person's home.
  package static func ownPath(data: String?, home: @autoclosure () throws(SheafError) -> String) throws(SheafError)
    -> String
  {
    if let data, data.hasPrefix("/") { return data + "/sheaf/library.sqlite" }
    return try home() + "/.local/share/sheaf/library.sqlite"
  }
}
