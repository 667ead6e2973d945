import Glibc
import SheafModel

/// The account that `sheaf mount` uses where none is named: `USER@HOST`.
enum DefaultAccount {
  /// The handle for a user of a machine: lower case, what no handle may contain replaced by `-`.
  static func handle(user: String, host: String) throws(SheafError) -> AccountHandle {
    let local = fit(user, allowing: "abcdefghijklmnopqrstuvwxyz0123456789._+-", otherwise: "user")
    let domain = fit(host, allowing: "abcdefghijklmnopqrstuvwxyz0123456789.-", otherwise: "localhost")
    return try AccountHandle("\(local.prefix(100))@\(domain.prefix(154))")
  }

  /// Which of a library's accounts the user's is: `USER@HOST`, else the only one with that user's name, since a machine
  /// may be renamed; nil where it has to be made.
  static func existing(_ handle: AccountHandle, among accounts: [Account]) -> AccountHandle? {
    if accounts.contains(where: { $0.handle == handle }) { return handle }
    let user = handle.description.prefix { $0 != "@" }
    let named = accounts.filter { $0.handle.description.prefix { $0 != "@" } == user }
    return named.count == 1 && accounts.count == 1 ? named[0].handle : nil
  }

  /// This machine's name.
  static func hostName() -> String {
    var buffer = [UInt8](repeating: 0, count: 256)
    let result = buffer.withUnsafeMutableBytes { bytes in
      gethostname(bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count - 1)
    }
    return result == 0 ? buffer.prefix { $0 != 0 }.readable : ""
  }

  private static func fit(_ text: String, allowing allowed: String, otherwise: String) -> String {
    let fitted = String(text.lowercased().map { allowed.contains($0) ? $0 : "-" })
    return fitted.isEmpty ? otherwise : fitted
  }
}
