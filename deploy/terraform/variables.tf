variable "namespace" {
  description = "Namespace of Horai; it exists."
  type        = string
  default     = "horai"
}

variable "database" {
  description = "The PostgreSQL that Horai uses. The provider postgresql is configured with a role that can create roles and databases."
  type = object({
    host    = string
    port    = optional(number, 5432)
    name    = optional(string, "horai")
    sslmode = optional(string, "require")
  })
}

variable "image" {
  description = "Repository and tag of the image of Horai."
  type = object({
    repository = string
    tag        = string
  })
}

variable "public_url" {
  description = "Address of the API and the console as browsers see it."
  type        = string
}

variable "trusted_proxies" {
  description = "Networks of the proxies that end TLS, in CIDR notation."
  type        = list(string)
}

variable "nodes" {
  description = "Bounds of the autoscaler for nodes."
  type = object({
    min = optional(number, 2)
    max = optional(number, 8)
  })
  default = {}
}
