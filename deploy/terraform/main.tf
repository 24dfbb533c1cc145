# Horai on Kubernetes, with a managed PostgreSQL of any provider: its logins and roles, the Secrets, and the release of the chart.
# The state of Terraform contains the passwords and keys: keep it encrypted.

resource "random_password" "login" {
  for_each = toset(["horai_owner", "horai_node"])
  length   = 32
  special  = false
}

resource "postgresql_role" "isolation" {
  for_each = toset(["horai_api", "horai_auth", "horai_engine"])
  name     = each.key
  login    = false
}

resource "postgresql_role" "login" {
  for_each = random_password.login
  name     = each.key
  login    = true
  password = each.value.result
  roles    = [for role in postgresql_role.isolation : role.name]
}

resource "postgresql_database" "horai" {
  name  = var.database.name
  owner = postgresql_role.login["horai_owner"].name
}

resource "random_bytes" "encryption_key" {
  length = 32
}

resource "tls_private_key" "audit" {
  algorithm = "ED25519"
}

locals {
  address = "${var.database.host}:${var.database.port}/${var.database.name}?sslmode=${var.database.sslmode}"
  urls = {
    for login, password in random_password.login : login => "postgresql://${login}:${password.result}@${local.address}"
  }

  values = {
    image = {
      repository = var.image.repository
      tag        = var.image.tag
    }
    database = {
      existingSecret = kubernetes_secret.horai.metadata[0].name
      urlKey         = "database-url"
    }
    migration = {
      urlKey = "owner-url"
    }
    encryption = {
      existingSecret = kubernetes_secret.horai.metadata[0].name
    }
    audit = {
      existingSecret = kubernetes_secret.horai.metadata[0].name
    }
    access = {
      publicUrl      = var.public_url
      trustedProxies = var.trusted_proxies
    }
    node = {
      autoscaling = {
        enabled     = true
        minReplicas = var.nodes.min
        maxReplicas = var.nodes.max
      }
    }
  }
}

resource "kubernetes_secret" "horai" {
  metadata {
    name      = "horai"
    namespace = var.namespace
  }
  data = {
    "database-url"   = local.urls["horai_node"]
    "owner-url"      = local.urls["horai_owner"]
    "encryption-key" = random_bytes.encryption_key.base64
    "audit-key"      = tls_private_key.audit.private_key_pem_pkcs8
  }
}

resource "helm_release" "horai" {
  name       = "horai"
  namespace  = var.namespace
  chart      = "${path.module}/../helm/horai"
  values     = [yamlencode(local.values)]
  atomic     = true
  timeout    = 900
  depends_on = [postgresql_database.horai]
}
