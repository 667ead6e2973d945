import Glibc
import SheafModel

/// The account that `sheaf mount` makes in a new library if none is named: `USER@HOST`.
enum DefaultAccount {
  /// The handle for a user of a machine: in lower case, with `-` for characters that no handle may contain.
  static func handle(user: String, host: String) throws(SheafError) -> AccountHandle {
    let local = fit(user, allowing: "abcdefghijklmnopqrstuvwxyz0123456789._+-", otherwise: "user")
    let domain = fit(host, allowing: "abcdefghijklmnopqrstuvwxyz0123456789.-", otherwise: "localhost")
    return try AccountHandle("\(local.prefix(100))@\(domain.prefix(154))")
  }

  /// Finds the account of a user to whom root gives a mount: `USER@HOST`, otherwise the only one with that user's name,
  /// since a machine may be renamed. It is nil if that is not clear: nobody gets another one's documents.
  static func own(_ handle: AccountHandle, among accounts: [AccountHandle]) -> AccountHandle? {
    if accounts.contains(handle) { return handle }
    let user = handle.description.prefix { $0 != "@" }
    let named = accounts.filter { $0.description.prefix { $0 != "@" } == user }
    return named.count == 1 ? named[0] : nil
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
