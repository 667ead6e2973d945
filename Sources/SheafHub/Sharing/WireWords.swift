import SheafModel
import SheafWire

// What shares say of people and of rights, in words of the store and of the wire.

extension Role {
  init(_ role: WireRole) {
    self =
      switch role {
      case .owner: .owner
      case .administrator: .administrator
      case .privateUser: .privateUser
      case .publicUser: .publicUser
      }
  }

  var wire: WireRole {
    switch self {
    case .owner: .owner
    case .administrator: .administrator
    case .privateUser: .privateUser
    case .publicUser: .publicUser
    }
  }
}

extension SharePermission {
  init(_ permission: WirePermission) {
    self =
      switch permission {
      case .readOnly: .readOnly
      case .readWrite: .readWrite
      }
  }

  var wire: WirePermission {
    switch self {
    case .readOnly: .readOnly
    case .readWrite: .readWrite
    }
  }
}

extension PublicPermission {
  init(_ permission: WirePublicPermission) {
    self =
      switch permission {
      case .none: .none
      case .readOnly: .readOnly
      case .readWrite: .readWrite
      }
  }

  var wire: WirePublicPermission {
    switch self {
    case .none: .none
    case .readOnly: .readOnly
    case .readWrite: .readWrite
    }
  }
}

extension Acceptance {
  var wire: WireAcceptance {
    switch self {
    case .pending: .pending
    case .accepted: .accepted
    case .removed: .removed
    }
  }
}
