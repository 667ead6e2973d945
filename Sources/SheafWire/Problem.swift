/// The body of an answer that tells of a failure: problem details (RFC 9457), `application/problem+json`.
public struct Problem: Hashable, Sendable, Codable {
  /// Kinds of failures, named after what the caller can do about them.
  public enum Kind: String, Sendable, Codable, CaseIterable {
    /// 400: the request makes no sense; another try will not either.
    case invalid
    /// 401: no session, or one that ended.
    case unauthorized
    /// 403: the session's account may not do this.
    case forbidden
    /// 404: nothing is there.
    case notFound = "not-found"
    /// 405: the resource has no such method.
    case method
    /// 409: something that is there now is in the way.
    case conflict
    /// 410: the position is of another time; start anew.
    case gone
    /// 410: the device was removed, and is to destroy what it has of the account.
    case wiped
    /// 413: the request is longer than it may be.
    case tooLarge = "too-large"
    /// 415: the body is of another type than it should be.
    case mediaType = "media-type"
    /// 416: the range lies outside of the contents.
    case range
    /// 429: too many at once; `Retry-After` says when.
    case tooMany = "too-many"
    /// 500: an error of the hub.
    case failure
    /// 503: the store is away, or the hub is ending; `Retry-After` says when.
    case unavailable
    /// 507: the account's quota does not allow it.
    case quota
    /// 507: the hub's disk is nearly full, and takes only what needs no room.
    case full

    /// The status of the answer.
    public var status: Int {
      switch self {
      case .invalid: 400
      case .unauthorized: 401
      case .forbidden: 403
      case .notFound: 404
      case .method: 405
      case .conflict: 409
      case .gone, .wiped: 410
      case .tooLarge: 413
      case .mediaType: 415
      case .range: 416
      case .tooMany: 429
      case .failure: 500
      case .unavailable: 503
      case .quota, .full: 507
      }
    }

    fileprivate var title: String {
      switch self {
      case .invalid: "The request makes no sense"
      case .unauthorized: "There is no such session"
      case .forbidden: "Not permitted"
      case .notFound: "Nothing is there"
      case .method: "No such method"
      case .conflict: "In the way of what is there"
      case .gone: "No longer there"
      case .wiped: "Destroy what is there"
      case .tooLarge: "Too long"
      case .mediaType: "Another type of body is needed"
      case .range: "Outside of the contents"
      case .tooMany: "Too many at once"
      case .failure: "The hub failed"
      case .unavailable: "Try again later"
      case .quota: "No space left in the account"
      case .full: "No space left at the hub"
      }
    }
  }

  private static let prefix = "urn:sheaf:problem:"

  /// `urn:sheaf:problem:` and the kind.
  public let type: String
  public let title: String
  public let status: Int
  /// The failure, described for people.
  public let detail: String

  public init(_ kind: Kind, detail: String) {
    type = Self.prefix + kind.rawValue
    title = kind.title
    status = kind.status
    self.detail = detail
  }

  /// The kind; nil for one that is newer than this program.
  public var kind: Kind? {
    guard type.hasPrefix(Self.prefix) else { return nil }
    return Kind(rawValue: String(type.dropFirst(Self.prefix.count)))
  }
}
