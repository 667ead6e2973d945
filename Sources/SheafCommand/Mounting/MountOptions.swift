import SheafModel

/// The mount options of `-o`, in the form of mount(8) and fstab(5).
struct MountOptions: Equatable {
  var readOnly = false
  var allowOther = false
  var library: String?
  var account: String?
  var forUser: String?
  /// Options for the mount itself, in the order given.
  var forwarded: [String] = []

  private static let forMount: Set<String> = [
    "nosuid", "suid", "nodev", "dev", "noexec", "exec", "noatime", "nodiratime", "sync", "dirsync",
    "default_permissions", "xattrs=named",
  ]
  /// Options that take back an earlier one. Access times are kept as with `relatime` and `lazytime`: nothing can be
  /// stricter while the kernel keeps pages that were read.
  private static let retracted = [
    "atime": "noatime", "relatime": "noatime", "strictatime": "noatime", "diratime": "nodiratime",
    "xattrs=all": "xattrs=named",
  ]
  /// Options that mount(8) and fstab(5) pass on for their own use.
  private static let forOthers: Set<String> = [
    "defaults", "auto", "noauto", "user", "users", "nouser", "owner", "group", "_netdev", "nofail", "async",
    "norelatime", "nostrictatime", "lazytime", "nolazytime", "silent", "loud",
  ]
  private static let prefixesForOthers = ["x-", "X-", "user=", "comment="]

  init() {}

  /// - Parameter lists: One comma-separated list for each `-o`.
  /// - Throws: ``SheafError`` of kind `invalid` that names the first unknown option.
  init(parsing lists: [String]) throws(SheafError) {
    for option in lists.flatMap({ $0.split(separator: ",").map(String.init) }) {
      switch option {
      case "ro": readOnly = true
      case "rw": readOnly = false
      case "allow_other": allowOther = true
      case _ where Self.forMount.contains(option): forwarded.append(option)
      case _ where Self.retracted[option] != nil: forwarded.removeAll { $0 == Self.retracted[option] }
      case _ where Self.forOthers.contains(option): continue
      case _ where Self.prefixesForOthers.contains(where: option.hasPrefix): continue
      default: try setValue(option)
      }
    }
  }

  private mutating func setValue(_ option: String) throws(SheafError) {
    let pair = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard pair.count == 2, !pair[1].isEmpty, ["library", "as", "for"].contains(pair[0]) else {
      throw SheafError(
        .invalid, subject: "-o \(option)".printable, reason: "is no mount option of Sheaf",
        advice: "there are ro, allow_other, library=FILE, as=HANDLE, for=USER, "
          + Self.forMount.sorted().joined(separator: ", "))
    }
    switch pair[0] {
    case "library": library = pair[1]
    case "as": account = pair[1]
    default: forUser = pair[1]
    }
  }
}
