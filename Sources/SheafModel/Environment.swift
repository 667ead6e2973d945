private import Glibc

/// Variables of the process's environment (environ(7)).
package enum Environment {
  /// A variable's value; nil where it is absent or empty.
  package static func value(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}
