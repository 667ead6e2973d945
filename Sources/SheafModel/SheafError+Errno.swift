private import Glibc

extension SheafError {
  /// The failure of a system call on `subject`, with the text of strerror(3): the one table from errno to ``Kind``.
  package init(systemError code: Int32, subject: String, advice: String? = nil) {
    let kind: Kind =
      switch code {
      case ENOENT: .notFound
      case EEXIST: .exists
      case ENOTDIR: .notDirectory
      case EISDIR: .isDirectory
      case EACCES: .accessDenied
      case EPERM: .notPermitted
      case ENOSPC, EDQUOT: .noSpace
      case ENAMETOOLONG: .nameTooLong
      case EBUSY: .busy
      case EROFS: .readOnly
      default: .inputOutput
      }
    self.init(kind, subject: subject, reason: String(cString: strerror(code)), advice: advice)
  }
}
